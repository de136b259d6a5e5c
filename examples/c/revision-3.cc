// Learns the fuel consumption of cars through revision 3 of the Paddle client library, in C++. With
// ETCD set, broker and job are found there; else they are PSERVER_URL and PSERVER_JOB.
#include <paddle_pserver_client.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "cars.h"

namespace {

constexpr int kRounds = 300;
constexpr double kLearningRate = 0.05;

/** The model, or a step of it, as the library takes it. */
struct Model {
  std::array<float, FEATURES> weights{};
  float bias = 0;

  std::array<paddle_parameter, 2> list() {
    return {{{const_cast<char *>("weights"), PADDLE_ELEMENT_TYPE_FLOAT32,
              reinterpret_cast<unsigned char *>(weights.data()), static_cast<int>(sizeof weights)},
             {const_cast<char *>("bias"), PADDLE_ELEMENT_TYPE_FLOAT32,
              reinterpret_cast<unsigned char *>(&bias), static_cast<int>(sizeof bias)}}};
  }
};

void check(int result) {
  if (result < 0) throw std::runtime_error(paddle_pserver_last_error());
}

/** A serialized OptimizerConfig: optimizer SGD, lr_policy Const, const_lr. */
std::array<unsigned char, 15> make_optimizer(double learning_rate) {
  std::array<unsigned char, 15> bytes{{0x08, 1, 0x58, 0, 0x62, 9, 0x09}};
  std::memcpy(bytes.data() + 7, &learning_rate, sizeof learning_rate);
  return bytes;
}

/** A client that releases itself. */
class Trainer {
 public:
  explicit Trainer(bool is_selected) {
    char *etcd = std::getenv("ETCD");
    client_ = etcd != nullptr ? paddle_new_etcd_pserver_client(etcd)
                              : paddle_new_pserver_client(nullptr, is_selected ? 1 : 0);
    check(client_);
  }
  ~Trainer() { paddle_pserver_client_release(client_); }
  Trainer(const Trainer &) = delete;
  Trainer &operator=(const Trainer &) = delete;

  /** Makes these the first values unless another trainer does. */
  void initialize(Model &first) {
    const int selected = paddle_begin_init_params(client_);
    check(selected);
    if (selected == 0) return;
    const auto optimizer = make_optimizer(kLearningRate);
    for (const paddle_parameter &parameter : first.list()) {
      check(paddle_init_param(client_, parameter, optimizer.data(), optimizer.size()));
    }
    check(paddle_finish_init_params(client_));
  }

  void get(Model &model) {
    auto list = model.list();
    std::array<paddle_parameter *, 2> wanted{{&list[0], &list[1]}};
    check(paddle_get_params(client_, wanted.data(), wanted.size()));
  }

  void send(Model &step) {
    const auto list = step.list();
    check(paddle_send_grads(client_, list.data(), list.size()));
  }

 private:
  paddle_pserver_client client_;
};

int train(const cars &data, part share) {
  Model model;
  Model step;
  Trainer trainer(share.rank == 0);
  trainer.initialize(model);
  for (int round = 0; round < kRounds; round++) {
    trainer.get(model);
    gradient(&data, share, model.weights.data(), model.bias, step.weights.data(), &step.bias);
    trainer.send(step);
  }
  trainer.get(model);
  return report(&data, model.weights.data(), model.bias);
}

}  // namespace

int main(int argc, char **argv) {
  static cars data;
  part share;
  if (read_cars(argc, argv, &data, &share) != 0) return 2;
  try {
    return train(data, share);
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
