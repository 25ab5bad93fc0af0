# As Keras has it.
param hidden = 16
data {
  train = csv("t.csv")
  a : f32
  b : f32
  y : f32
}
model {
  x = concat([reshape(a, [1]), reshape(b, [1])])
  p = linear(x, 1)
}
train {
  loss      = "mse"
  optimizer = sgd(0.1)
  batch     = 64
}
