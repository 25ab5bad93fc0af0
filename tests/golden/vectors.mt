# Large maps, windows and sums: a thread computes four neighbouring channels.
data {
  train = idx("x", "y")
  x     : f32[64, 16, 16]
  y     : f32[64]
}

model {
  seen  = relu(conv2d(x, 64, 1))
  scale = weight([64, 1, 1], init = normal(0, 1))
  pool  = max_pool(seen, 2)
  z     = global_avg_pool(pool * scale)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  precision = bf16
  batch     = 1024
}
