/**
 * PaddlePaddle's parameter server client, third and last published revision, on libpserver.
 *
 * The job is in the environment variable PSERVER_JOB, else it is "default" (with etcd: the one found
 * there); the trainer's id is in PSERVER_TRAINER, else it is an id that is used once. A trainer that
 * restarts with the same id continues in its place; two processes with one id end each other's sessions.
 * Credentials and TLS: as for libpserver, see pserver.h.
 *
 * A client is a number, unique in the process. Every function may be called from any thread, also
 * concurrently with one client, and blocks. A call that fails returns -1 and changes nothing; the first
 * failure with a code is printed to standard error, and paddle_pserver_last_error() returns the last one.
 * The timeout of calls is PSERVER_TIMEOUT_MS; by default an hour for waiting until another trainer has
 * initialized, ten minutes for saving, and 30 seconds for all other calls. NULL, clients that are released
 * or of another process (as after a fork), wrong names, types and lengths are errors, not crashes. Lengths
 * are in bytes.
 */
#ifndef PADDLE_PSERVER_CLIENT_V3_H
#define PADDLE_PSERVER_CLIENT_V3_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  PADDLE_ELEMENT_TYPE_INT32   = 0,
  PADDLE_ELEMENT_TYPE_UINT32  = 1,
  PADDLE_ELEMENT_TYPE_INT64   = 2,
  PADDLE_ELEMENT_TYPE_UINT64  = 3,
  PADDLE_ELEMENT_TYPE_FLOAT32 = 4,
  PADDLE_ELEMENT_TYPE_FLOAT64 = 5,
} paddle_element_type;

typedef struct {
  char* name;
  paddle_element_type element_type;
  unsigned char* content;
  int content_len;
} paddle_parameter, paddle_gradient;

typedef int paddle_pserver_client;

/**
 * Finds broker and job in etcd, connects and joins the job. `etcd_addr`: `http://host:port` or `host:port`,
 * several separated by commas; the prefix of the keys is in PSERVER_ETCD_PREFIX, by default empty. Such a
 * client can be selected to initialize. Waits up to 10 seconds for etcd and the keys of hosts, and up to 10
 * more for broker and host. -1 if that fails.
 */
paddle_pserver_client paddle_new_etcd_pserver_client(char* etcd_addr);

/**
 * Connects and joins the job; waits up to 10 seconds for broker and host. `pserver_addrs`: the brokers'
 * addresses separated by commas, `host:port` or `nats://host:port`; NULL or "": PSERVER_URL, else NATS_URL,
 * else nats://127.0.0.1:4222. Unless `selected` is 0, this client may be selected to initialize. -1 if that
 * fails.
 */
paddle_pserver_client paddle_new_pserver_client(char* pserver_addrs, int selected);

/** Refuses new calls, waits up to 10 seconds for running ones, ends those that are left, and disconnects.
 * Clients that are released already are ignored. */
void paddle_pserver_client_release(paddle_pserver_client c);

/**
 * Returns at once: 1 if this trainer is selected to initialize the parameters; 0 if they are initialized,
 * if another trainer initializes them, or if the client must not be selected: then call
 * paddle_get_params(). A trainer that restarts after it has finished gets 0. -1 on failure.
 */
int paddle_begin_init_params(paddle_pserver_client client);

/**
 * Stores the first values of a parameter. `param_config_proto` is a serialized OptimizerConfig; NULL or
 * length 0 means SGD with a learning rate of 1.0. Returns 0, or -1; 0 also if the job is initialized
 * already, which changes nothing.
 */
int paddle_init_param(paddle_pserver_client client, paddle_parameter param, const unsigned char* param_config_proto, int config_len);

/** Ends the initialization: from now on others can read the parameters. Returns 0, also if the job is
 * initialized already; or -1. */
int paddle_finish_init_params(paddle_pserver_client client);

/**
 * Makes one step of each parameter's optimizer. All gradients are checked before any is sent. Integers
 * cannot have gradients. Returns 0, or -1; after a timeout, the gradient of each block is applied once or
 * not at all.
 */
int paddle_send_grads(paddle_pserver_client client, const paddle_gradient* grads, int len);

/**
 * Reads the parameters named `dst[i]->name`; waits until they are initialized. `content` must point to
 * `content_len` bytes, the length of the parameter, which are undefined after a failure. If `content` is
 * NULL, it receives allocated memory, to be freed with paddle_release_param_content(). Sets `content`,
 * `content_len` and `element_type`. Returns 0, or -1; -1 also if the trainer that was initializing has died
 * and this one is selected instead: then call paddle_begin_init_params() again.
 */
int paddle_get_params(paddle_pserver_client client, paddle_parameter** dst, int len);

/** Makes a host write the model to `path` below its model directory. Returns 0, or -1. */
int paddle_save_model(paddle_pserver_client client, const char* path);

/* Beyond the published functions */

/**
 * Does the same as paddle_send_grads() for an array of pointers, as in the library that PaddlePaddle shipped.
 */
int paddle_send_grads_v(paddle_pserver_client client, paddle_gradient** grads, int len);

/** Frees the content that paddle_get_params() has allocated, and sets it to NULL. NULL is ignored. */
void paddle_release_param_content(paddle_parameter* param);

/** Returns code and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
