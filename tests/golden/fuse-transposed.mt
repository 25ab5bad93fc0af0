# A transposed operand is read as it lies in memory.
data {
  train = idx("x", "y")
  x     : f32[128]
  y     : f32[128]
}

model {
  w = weight([128, 128])
  h = relu(matmul(x, w))
  z = matmul(h, w, transpose_b = true)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
