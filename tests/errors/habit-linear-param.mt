# PyTorch says the size of the input too; the size of the output has a name.
param hidden = 16
data {
  train = csv("t.csv")
  a : f32
  b : f32
  y : f32
}
model {
  x = concat([reshape(a, [1]), reshape(b, [1])])
  p = linear(x, 2, hidden)
}
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 64
}
