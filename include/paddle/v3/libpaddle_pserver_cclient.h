/**
 * The third revision under the name, and with the functions, that PaddlePaddle shipped, where gradients are
 * an array of pointers. For trainers that were written for that library.
 */
#ifndef LIBPADDLE_PSERVER_CCLIENT_H
#define LIBPADDLE_PSERVER_CCLIENT_H

#include "paddle_pserver_client.h"

#define PSERVER_ERROR -1
/* pserver.h defines a constant of this name, with the same value. */
#ifndef PSERVER_H
#define PSERVER_OK 0
#endif

#define paddle_send_grads paddle_send_grads_v

#endif
