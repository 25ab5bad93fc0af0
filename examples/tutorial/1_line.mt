# A line through six points: y = 2 x - 1, and a little noise.
data {
  train = table([
      [-2, -5.1],
      [-1, -2.9],
      [0, -1.0],
      [1, 1.1],
      [2, 2.9],
      [3, 5.0],
  ])
  x : f32[1]
  y : f32[1]
}

model {
  line = linear(x, 1)
}

train {
  loss      = mse(line, y)
  optimizer = sgd(0.05)
  batch     = 6
  epochs    = 200
}
