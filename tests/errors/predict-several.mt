data {
  train = npz("train.npz")
  x     : f32[6]
  t     : f32[3]
}

model {
  a = linear(x, 3)
  b = linear(x, 3)
}

train {
  loss      = mse(a, t) + 2 * mse(b, t)
  optimizer = sgd(0.1)
}
