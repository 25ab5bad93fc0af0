# So small that one block trains it, the arena in its shared memory; products without panels.
data {
  train = idx("x", "y")
  x : f32[2]
  y : f32[1]
}

model {
  h     = sigmoid(linear(x, 4))
  y_hat = sigmoid(linear(h, 1))
}

train {
  loss      = mse(y_hat, y)
  optimizer = sgd(0.5)
  batch     = 4
}
