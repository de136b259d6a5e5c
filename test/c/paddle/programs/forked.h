#ifndef PADDLE_FORKED_H
#define PADDLE_FORKED_H

#include <sys/wait.h>
#include <unistd.h>

/** Whether `check` succeeds in a child of this process. */
static inline int holds_in_child(void (*check)(void)) {
  pid_t child = fork();
  if (child == 0) {
    check();
    _exit(0);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

#endif
