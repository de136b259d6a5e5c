/* A parameter of a type that PaddlePaddle has not is refused, however its length is known. */
#include <paddle_pserver_client.h>

#include "expect.h"

int main(void) {
  paddle_pserver_client *client = paddle_new_pserver_client();
  EXPECT(client != NULL);
  void *content = NULL;
  int bytes = 0;
  EXPECT_ERROR("BAD_DTYPE", paddle_get_param(client, "half", &content, &bytes));
  EXPECT(strstr(paddle_pserver_last_error(), "it has type 10") != NULL);
  EXPECT(content == NULL && bytes == 0);
  char room[4];
  content = room;
  bytes = sizeof room;
  EXPECT_ERROR("BAD_DTYPE", paddle_get_param(client, "half", &content, &bytes));
  EXPECT_ERROR("BAD_DTYPE", paddle_set_param(client, "half", PADDLE_ELEMENT_TYPE_FLOAT32, room));
  /* Now the lengths of the job's parameters are known. */
  EXPECT_ERROR("BAD_DTYPE", paddle_get_param(client, "half", &content, &bytes));
  EXPECT(content == room && bytes == sizeof room);
  paddle_pserver_client_release(client);
  return 0;
}
