# mtc --shards 2
# Of a gradient that lies in memory, the sum over shards: Adam's states and the weight are one kernel, which reads it once.
data {
  train = idx("x", "y")
  x     : f32[128]
  y     : f32[128]
}

model {
  z = linear(x, 128, bias = false)
}

train {
  loss      = mse(z, y)
  optimizer = adam(1e-3)
  batch     = 64
}
