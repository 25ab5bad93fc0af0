# How weights begin.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = linear(x, 4, init = he_normal(), bias_init = constant(0.1))
  b = linear(a, 4, init = xavier_uniform())
  y = linear(b, 3, init = normal(0, 0.02), bias = false)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
