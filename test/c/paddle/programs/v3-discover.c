/* Makes a client that finds broker and job in etcd, asks to initialize, and prints the result. Argument:
 * the address of etcd. */
#include <paddle_pserver_client.h>

#include "expect.h"

int main(int argc, char **argv) {
  paddle_pserver_client client = paddle_new_etcd_pserver_client(argv[argc - 1]);
  if (client < 0) {
    printf("%s\n", paddle_pserver_last_error());
    return 0;
  }
  EXPECT(client == 0);
  printf("selected %d\n", paddle_begin_init_params(client));
  paddle_pserver_client_release(client);
  return 0;
}
