# mtc --target cuda
data {
  train = npy("x")
  x     : f32[1, 30000, 30000]
}
model {
  a = relu(conv2d(x, 4, 3, padding = 1))
  b = sum(conv2d(a, 1, 3))
}
train {
  loss      = b
  predict   = b
  optimizer = sgd(0.1)
  batch     = 1
}
