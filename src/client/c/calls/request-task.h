#ifndef CALLS_REQUEST_TASK_H
#define CALLS_REQUEST_TASK_H

#include "calls/call.h"
#include "wire/requests.h"

/** Sends the requests of a call and waits. OK once all are answered, otherwise the first error, or what
 * ended the call. */
pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count);

#endif
