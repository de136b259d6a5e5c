#ifndef PADDLE_POINTER_CLIENT_H
#define PADDLE_POINTER_CLIENT_H

#include "trainer.h"

struct paddle_pserver_client;

/** Returns the number of the trainer that a client stands for. */
uint32_t ps_number_of(const struct paddle_pserver_client *client);

#endif
