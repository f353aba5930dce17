"""A Docker Engine with the image of tasks for a test that is not Python: prints its socket and the image's name as JSON, runs the
words of `docker` that come as JSON lists, one a line, and ends with everything in it when its input does."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from task_containers import IMAGE, TaskEngine

where = Path(tempfile.mkdtemp(prefix="gb.", dir="/tmp"))
engine = TaskEngine(where)
try:
    print(json.dumps({"socket": str(engine.socket), "image": IMAGE}), flush=True)
    for line in sys.stdin:
        print(json.dumps(engine(*json.loads(line), check=False).stdout), flush=True)
finally:
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)
