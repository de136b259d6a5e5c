#ifndef CALLS_REQUEST_TASK_H
#define CALLS_REQUEST_TASK_H

#include "calls/call.h"
#include "wire/requests.h"

/** Asks on behalf of a call and waits; OK once each question has its answer, else the first error, or what
 * has ended the call. */
pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count);

#endif
