# Each weight's gradient reads the other weight, so that neither may be overwritten before both are known.
data {
  train = idx("x", "y")
  x     : f32[128]
  y     : f32[128]
}

model {
  a = weight([128, 64])
  b = weight([64, 128])
  z = matmul(x, matmul(a, b))
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
