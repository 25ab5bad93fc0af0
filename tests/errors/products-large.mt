data {
  train = npy("x", "y")
  x     : f32[64, 65536, 2]
  y     : f32[3]
}
model {
  scores = matmul(x, transpose(slice(x, 1, 0, 100), 1, 2))
  best   = max(scores, 2)
  s      = linear(max(best, 0), 3)
}
train {
  loss      = mse(s, y)
  optimizer = sgd(0.1)
  batch     = 1024
}
