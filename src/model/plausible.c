#include "model/plausible.h"

#include <math.h>

bool value_is_plausible(enum metric_unit unit, double value) {
    static const struct {
        double min, max;
    } bounds[] = {
        [UNIT_RATIO] = {0,   1.0  },
          [UNIT_CELSIUS] = {-60, 200  }, /* margins are negative past the limit */
        [UNIT_WATTS] = {0,   20000},
          [UNIT_JOULES] = {0,   1e14 },
        [UNIT_BYTES] = {0,   1e18 },
          [UNIT_BYTES_PER_SECOND] = {0,   1e14 },
        [UNIT_HERTZ] = {0,   2e10 },
          [UNIT_SECONDS] = {0,   4e9  },
        [UNIT_BOOL] = {0,   1    },
          [UNIT_NUMBER] = {0,   1e18 },
    };
    return isfinite(value) && value >= bounds[unit].min && value <= bounds[unit].max;
}
