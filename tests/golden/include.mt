# Functions of another file.
include "include/mlp.mt"

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = mlp(x, 4, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
