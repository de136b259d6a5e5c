/* Fuel consumption of cars, and a linear model of it: what the trainers in this directory share. */
#ifndef CARS_H
#define CARS_H

#ifdef __cplusplus
extern "C" {
#endif

#define CARS_MAX 512
#define FEATURES 5

/** Cars: the data of each, scaled to mean 0 and deviation 1, and its miles per gallon. */
struct cars {
  int count;
  float features[CARS_MAX][FEATURES];
  float mpg[CARS_MAX];
};

/** The part of one of several trainers: every car whose number has this remainder. */
struct part {
  int rank;
  int trainers;
};

/** Reads data/auto-mpg.csv, and from `arguments` rank and number of trainers; 0, or -1 with a message. */
int read_cars(int count, char **arguments, struct cars *cars, struct part *part);

/** Returns the mean squared error of the model over all cars. */
double mean_squared_error(const struct cars *cars, const float weights[FEATURES], float bias);

/** Computes the gradient of half of the mean squared error over a part of the cars. */
void gradient(const struct cars *cars, struct part part, const float weights[FEATURES], float bias,
              float weight_gradient[FEATURES], float *bias_gradient);

/**
 * Prints the error; returns 0 if the model has been learned, that is, if the error is close to the
 * least possible one of 5.09.
 */
int report(const struct cars *cars, const float weights[FEATURES], float bias);

#ifdef __cplusplus
}
#endif

#endif
