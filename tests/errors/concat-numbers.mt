# Numbers have no axis to be joined along.
param hidden = 16
data {
  train = csv("t.csv")
  a : f32
  b : f32
  y : f32
}
model {
  x = concat([a, b])
  p = linear(x, 1)
}
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 64
}
