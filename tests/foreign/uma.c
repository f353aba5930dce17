/* GPUs that have no memory of their own to tell of: the first is integrated and shares the machine's, the second is a
 * card whose memory is not told, which is another matter. */
#include "foreign.h"

HAS_DRIVER("580.95.05")
HAS_CARDS(2)
HAS_HANDLES(2)
SAYS_TEXT(nvmlDeviceGetName, index_of(device) == 0 ? "NVIDIA GB10" : "NVIDIA GB100")
SAYS_TEXT(nvmlDeviceGetUUID, index_of(device) == 0 ? "GPU-10000000-0000-0000-0000-000000000007"
                                                   : "GPU-10000000-0000-0000-0000-000000000008")
SAYS_UINT(nvmlDeviceGetPowerUsage, 11000)
SAYS_CODE(nvmlDeviceGetMemoryInfo, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetMemoryInfo_v2, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetPowerManagementLimit, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetEnforcedPowerLimit, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetNumFans, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetFanSpeed, NOT_SUPPORTED)
