/**
 * PaddlePaddle's parameter server client, third and last published revision, on libpserver.
 *
 * The job comes from PSERVER_JOB, else it is "default" (with etcd: the one found there); this trainer's
 * id from PSERVER_TRAINER, else it is one that is used once. A trainer that is restarted under its id
 * takes over what it was doing; two processes with one id end each other's sessions. Credentials and
 * TLS: as libpserver, see pserver.h.
 *
 * A client is a number, from 0 on, and never used again. Every function may be called from any thread,
 * several on one client at once, and blocks. Failures return -1, print a message to standard error
 * the first time, and change nothing; paddle_pserver_last_error() tells more. A call ends by itself:
 * after PSERVER_TIMEOUT_MS, which if not set is an hour for waiting until another trainer has
 * initialized, ten minutes for saving, and 30 seconds for all else. NULL, clients that are released
 * or of another process (after a fork), wrong names, types and lengths are errors, not crashes.
 * Lengths are in bytes.
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
 * Finds broker and job in etcd, connects and joins. `etcd_addr`: `http://host:port` or `host:port`,
 * several separated by commas; what the keys there begin with comes from PSERVER_ETCD_PREFIX, nothing
 * if it is not set. Every client of this kind can be selected to initialize. Waits up to 10 seconds for
 * etcd and what hosts write there, and as long again for broker and host. -1 if that fails.
 */
paddle_pserver_client paddle_new_etcd_pserver_client(char* etcd_addr);

/**
 * Connects and joins; waits up to 10 seconds for broker and host. -1 if that fails.
 * `pserver_addrs`: the brokers' addresses separated by commas, `host:port` or `nats://host:port`; NULL
 * or "": PSERVER_URL, else NATS_URL, else nats://127.0.0.1:4222. With `selected` not 0 this
 * client may be selected to initialize.
 */
paddle_pserver_client paddle_new_pserver_client(char* pserver_addrs, int selected);

/** Refuses new calls, waits up to 10 seconds for those under way, ends those that are left, and
 * disconnects. Clients that are released already are ignored. */
void paddle_pserver_client_release(paddle_pserver_client c);

/**
 * Returns at once: 1 if this trainer is selected to initialize the parameters; 0 if not, because
 * they are initialized, another one is doing so, or the client was made not to be selected: then get
 * them. A trainer that was selected and restarts after it finished gets 0. -1 on failure.
 */
int paddle_begin_init_params(paddle_pserver_client client);

/**
 * Stores the first values of a parameter. `param_config_proto` is a serialized OptimizerConfig; none
 * (NULL or length 0) means SGD with a learning rate of 1.0. 0, also if the job is initialized already,
 * and then nothing changes; or -1.
 */
int paddle_init_param(paddle_pserver_client client, paddle_parameter param, const unsigned char* param_config_proto, int config_len);

/** Ends the initialization: others see the parameters from now on. 0, also if the job is initialized
 * already; or -1. */
int paddle_finish_init_params(paddle_pserver_client client);

/**
 * One step of each parameter's optimizer. All gradients are checked before any is sent. Integers take
 * none. 0, or -1; after a timeout, each piece of a gradient was applied once or not at all.
 */
int paddle_send_grads(paddle_pserver_client client, const paddle_gradient* grads, int len);

/**
 * Reads parameters by the names in `dst[i]->name`; waits until they are initialized. `content_len`
 * must be the length of the parameter and `content` have that room; what is there is undefined after a
 * failure. With `content` NULL memory is allocated, to be freed with paddle_release_param_content().
 * `content`, `content_len` and `element_type` are set. 0, or -1; -1 also when the trainer that was
 * initializing has died and this one is selected instead: begin again.
 */
int paddle_get_params(paddle_pserver_client client, paddle_parameter** dst, int len);

/** Has a host write the model to `path` below its model directory. 0, or -1. */
int paddle_save_model(paddle_pserver_client client, const char* path);

/* Beyond the published functions */

/** paddle_send_grads() with an array of pointers, as the library took it that was shipped. */
int paddle_send_grads_v(paddle_pserver_client client, paddle_gradient** grads, int len);

/** Frees the content that paddle_get_params() allocated and makes it NULL. NULL is ignored. */
void paddle_release_param_content(paddle_parameter* param);

/** Name and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
