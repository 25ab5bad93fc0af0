# mtc --target cuda
data {
  train = npy("x", "y")
  x     : f32[16]
  y     : f32[65536]
}
model {
  w = weight([65536, 65536])
  h = matmul(linear(x, 65536), w)
}
train {
  loss      = mse(h, y)
  optimizer = sgd(0.1)
}
