#ifndef TRAINING_H
#define TRAINING_H

#include <pserver.h>

#include "agent.h"

/** Time limit of every call, longer than anything that is measured. */
#define TIMEOUT_MS 100000

/** The program's client; NULL until open_trainer() has succeeded. Any thread may use it. */
extern pserver_client *client;

/** Connects; a command with the arguments URL, job, trainer. */
bool open_trainer(char **arguments, struct answer *answer);

/** Disconnects, if the program is connected. */
void close_trainer(void);

/** Whether a call of the library has succeeded; if not, the answer is `what` and the error. */
bool is_done(pserver_status status, const char *what, struct answer *answer);

#endif
