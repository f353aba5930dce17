/* The supervisor: starts the processes of an instance, watches their heartbeats, restarts the dead and the hung,
 * fences the unkillable, stops them all within seconds, and reloads on SIGHUP. It opens no driver and no network. */
#pragma once

/* gpumgr-core supervise ROLE SETTINGS_FD PROGRAM [FLAGS...] */
int supervisor_main(int argc, char **argv);
