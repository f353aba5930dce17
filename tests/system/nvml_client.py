"""NVML as a foreign client sees it, through ctypes alone: layouts and numbers are written here a second time, from the
driver's documentation, so that a mistake in the project's own header cannot hide itself."""

import ctypes as c
from types import SimpleNamespace

u32, i32, u64, i64 = c.c_uint, c.c_int, c.c_ulonglong, c.c_longlong
handle = c.c_void_p
NA = 2**64 - 1

(OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, _, NOT_FOUND, INSUFFICIENT_SIZE, _, DRIVER_NOT_LOADED,
 TIMEOUT) = range(11)
FUNCTION_NOT_FOUND, GPU_IS_LOST, VERSION_MISMATCH, NO_DATA, BAD_VERSION = 13, 15, 18, 21, 25


def layout(name, size, *fields):
    kind = type(name, (c.Structure,), {"_fields_": list(fields)})
    assert c.sizeof(kind) == size, name
    kind.word = lambda version: size | version << 24
    return kind


Pci = layout("Pci", 68, ("legacy", c.c_char * 16), ("domain", u32), ("bus", u32), ("device", u32), ("id", u32),
             ("subsystem", u32), ("bus_id", c.c_char * 32))
Memory = layout("Memory", 24, ("total", u64), ("free", u64), ("used", u64))
Memory2 = layout("Memory2", 40, ("version", u32), ("total", u64), ("reserved", u64), ("free", u64), ("used", u64))
Utilization = layout("Utilization", 8, ("gpu", u32), ("memory", u32))
Process1 = layout("Process1", 16, ("pid", u32), ("used", u64))
Process2 = layout("Process2", 24, ("pid", u32), ("used", u64), ("gi", u32), ("ci", u32))
Detail = layout("Detail", 32, ("pid", u32), ("used", u64), ("gi", u32), ("ci", u32), ("protected", u64))
DetailList = layout("DetailList", 24, ("version", u32), ("mode", u32), ("count", u32), ("array", c.POINTER(Detail)))
Share = layout("Share", 32, ("pid", u32), ("at", u64), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32))
ShareRow = layout("ShareRow", 40, ("at", u64), ("pid", u32), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32),
                  ("jpg", u32), ("ofa", u32))
Shares = layout("Shares", 24, ("version", u32), ("count", u32), ("last_seen", u64), ("rows", c.POINTER(ShareRow)))


class Value(c.Union):
    _fields_ = [("d", c.c_double), ("i", i32), ("u", u32), ("ul", c.c_ulong), ("u64", u64), ("i64", i64), ("us", c.c_ushort)]


Field = layout("Field", 40, ("id", u32), ("scope", u32), ("at", i64), ("latency", i64), ("type", u32), ("result", i32),
               ("value", Value))
Sample = layout("Sample", 16, ("at", u64), ("value", Value))
Event = layout("Event", 32, ("device", handle), ("type", u64), ("data", u64), ("gi", u32), ("ci", u32))
EventOld = layout("EventOld", 24, ("device", handle), ("type", u64), ("data", u64))
Temperature = layout("Temperature", 12, ("version", u32), ("sensor", u32), ("celsius", i32))
Margin = layout("Margin", 8, ("version", u32), ("celsius", i32))
FanSpeed = layout("FanSpeed", 12, ("version", u32), ("fan", u32), ("rpm", u32))
PowerValue = layout("PowerValue", 12, ("version", u32), ("scope", c.c_ubyte), ("milliwatts", u32))
Violation = layout("Violation", 16, ("at", u64), ("ns", u64))
EccCounts = layout("EccCounts", 32, ("l1", u64), ("l2", u64), ("memory", u64), ("registers", u64))
Attributes = layout("Attributes", 40, ("sm", u32), ("copy", u32), ("dec", u32), ("enc", u32), ("jpg", u32), ("ofa", u32),
                    ("gpu_slices", u32), ("compute_slices", u32), ("memory_mib", u64))
Fabric = layout("Fabric", 40, ("version", u32), ("cluster", c.c_ubyte * 16), ("status", i32), ("clique", u32),
                ("state", c.c_ubyte), ("health", u32), ("summary", c.c_ubyte))
Histogram = layout("Histogram", 20, ("max", u32), ("high", u32), ("partial", u32), ("low", u32), ("none", u32))
Metric = layout("Metric", 40, ("id", u32), ("result", i32), ("value", c.c_double), ("short", c.c_char_p), ("long", c.c_char_p),
                ("unit", c.c_char_p))
Metrics = layout("Metrics", 24 + 333 * 40, ("version", u32), ("count", u32), ("first", handle), ("second", handle),
                 ("metric", Metric * 333))
Support = layout("Support", 8, ("version", u32), ("is_supported", u32))


class Nvml:
    """The library, opened and initialised. n.Name(args) is nvmlName; the result is the code."""

    def __init__(self, library, init=True):
        self.lib = c.CDLL(str(library))
        self.lib.nvmlErrorString.restype = c.c_char_p
        if init:
            assert self.Init_v2() == OK

    def __getattr__(self, name):
        return getattr(self.lib, "nvml" + name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self.Shutdown() == OK:
            pass

    def device(self, index=0):
        h = handle()
        assert self.DeviceGetHandleByIndex_v2(index, c.byref(h)) == OK
        return h

    def get(self, name, device, *args, kind=u32):
        """(code, value) of a question whose last argument is where the answer goes."""
        out = kind()
        code = getattr(self, "DeviceGet" + name)(device, *args, c.byref(out))
        return code, out if isinstance(out, c.Structure) else out.value

    def text(self, name, device, size=96):
        out = c.create_string_buffer(size)
        code = getattr(self, "DeviceGet" + name)(device, out, size)
        return code, out.value.decode()

    def fields(self, device, *wanted):
        """Field values by id; a pair is (id, scope)."""
        pairs = [w if isinstance(w, tuple) else (w, 0) for w in wanted]
        array = (Field * len(pairs))()
        for slot, (field, scope) in zip(array, pairs):
            slot.id, slot.scope, slot.result = field, scope, -1
        assert self.DeviceGetFieldValues(device, len(pairs), array) == OK
        names = {0: "d", 1: "u", 2: "ul", 3: "u64", 4: "i64", 5: "i", 6: "us"}
        return [SimpleNamespace(result=f.result, type=f.type, at=f.at, latency=f.latency,
                                value=getattr(f.value, names[f.type]) if f.result == OK else None) for f in array]

    def processes(self, name, device, kind=Process2):
        """A process list by the driver's protocol: ask for the size, then for the list."""
        call, count = getattr(self, "DeviceGet" + name), u32(0)
        code = call(device, c.byref(count), None)
        while code == INSUFFICIENT_SIZE:
            array = (kind * count.value)()
            code = call(device, c.byref(count), array)
        if code != OK:
            return code, []
        return OK, list(array[: count.value]) if count.value else []
