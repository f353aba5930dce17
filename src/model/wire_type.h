/* The frames that there are, by number (model/wire.h says how they lie on the wire). A number is never used for another. */
#pragma once

enum wire_type {
    /* node to server; 40 to 49 and 70 to 127 are free */
    WIRE_HELLO = 1,
    WIRE_INVENTORY,
    WIRE_SAMPLE,
    WIRE_LATEST,
    WIRE_STATE,
    WIRE_PROCESSES,
    WIRE_XIDS,
    WIRE_GUARD,
    WIRE_DRIVER,
    WIRE_HOST,
    WIRE_EVENT,
    WIRE_ROUND,
    WIRE_ORDER_RESULT,
    WIRE_TASK = 20,
    WIRE_CONTAINER,
    WIRE_NODE,
    WIRE_USE,
    WIRE_JOB_SEALED = 30, /* jobs: model/wire_job.h */
    WIRE_JOB_SUBMIT,
    WIRE_JOB_CONTROL,
    WIRE_JOB_RUN,
    WIRE_JOB_LOG,
    WIRE_JOB_FREE,
    WIRE_JOB_FIGURES,
    WIRE_JOB_HEALTH, /* services: model/wire_health.h */
    WIRE_JOB_TRIED,
    WIRE_JOB_NOTICED = 39,  /* model/wire_notice.h */
    WIRE_STREAM_HELLO = 50, /* streams: model/wire_stream.h */
    WIRE_STREAM_OPENED,
    WIRE_CONTAINER_ANSWER = 55, /* model/wire_container_call.h */
    WIRE_CALL_SUBMIT = 60,      /* a caller to the node of his machine: model/jobs_socket.h */
    WIRE_CALL_FOLLOW,
    WIRE_CALL_SIGNAL,
    /* server to node; 160 to 169 and 180 to 255 are free */
    WIRE_WELCOME = 128,
    WIRE_ORDER,
    WIRE_BYE, /* either way: why this connection is about to be closed */
    WIRE_JOB_SEAL = 140,
    WIRE_JOB_SUBMITTED,
    WIRE_JOB_CONTROLLED,
    WIRE_JOB_GRANT,
    WIRE_JOB_STOP,
    WIRE_JOB_STORED,
    WIRE_JOB_RUNS,
    WIRE_JOB_LOG_ASK,
    WIRE_JOB_TRY,
    WIRE_JOB_WANTED = 158, /* model/wire_notice.h */
    WIRE_JOB_NOTICE,
    WIRE_STREAM_OPEN = 170, /* streams; all but OPEN and SIZE either way */
    WIRE_STREAM_DATA,
    WIRE_STREAM_WINDOW_MORE,
    WIRE_STREAM_END,
    WIRE_STREAM_CLOSE,
    WIRE_STREAM_SIZE,
    WIRE_CONTAINER_CALL = 180,
};
