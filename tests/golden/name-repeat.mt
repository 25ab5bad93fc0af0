# Repetitions are told apart by their index.
fn residual(x[n]) {
  up = relu(linear(x, 2 * n))
  return linear(up, n, name = "down")
}

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = x
  repeat i in 0..2 {
    h = h + residual(h)
  }
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
