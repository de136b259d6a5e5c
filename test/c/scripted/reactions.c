#include "scripted.h"
const struct scenario reaction_scenarios[] = {{NULL, NULL}};
