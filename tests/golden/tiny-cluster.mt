# Too much for one block, too little for the whole device: a cluster; rows are dealt to half warps.
data {
  train = idx("x", "y")
  x : f32[19]
  y : f32[1]
}

model {
  h     = relu(linear(x, 32))
  y_hat = linear(h, 1)
}

train {
  loss      = mse(y_hat, y)
  optimizer = adam(1e-3)
  batch     = 256
}
