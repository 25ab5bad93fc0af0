# param, data, model and train are names inside blocks.
param param = 2.0

fn include(x) { return x }

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  data = relu(x)
  model = data + param
  train = include(model)
  y = linear(train, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
