# Sums along a slow axis: neighbours in memory are neighbours in a team.
data {
  train = idx("x", "y")
  x     : f32[256]
  y     : f32[64]
}

model {
  h = reshape(linear(x, 2048), [32, 64])
  z = sum(h, axis = 0)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
