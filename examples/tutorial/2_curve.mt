# A curve through eleven points of a sine: a layer in between bends the line.
param hidden = 16  # neurons of the layer

data {
  train = table([
      [-3.0, -0.14],
      [-2.4, -0.68],
      [-1.8, -0.97],
      [-1.2, -0.93],
      [-0.6, -0.56],
      [0.0, 0.00],
      [0.6, 0.56],
      [1.2, 0.93],
      [1.8, 0.97],
      [2.4, 0.68],
      [3.0, 0.14],
  ])
  x : f32[1]
  y : f32[1]
}

model {
  h     = tanh(linear(x, hidden))
  curve = linear(h, 1)
}

train {
  loss      = mse(curve, y)
  optimizer = adam(0.01)
  batch     = 11
  epochs    = 1000
}
