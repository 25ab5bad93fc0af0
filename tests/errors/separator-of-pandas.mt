data {
  train = csv("t.csv", sep = ";")
  x : f32[1] = column("a")
}
model { p = linear(x, 1) }
train {
  loss      = mse(p, x)
  optimizer = sgd(0.1)
  batch     = 1
}
