data {
  train = idx("x", "y")
  x : f32
  y : f32
}
model {
  p = linear(reshape(x, [1]), 1)
}
train {
  criterion = mean(square(p - y))
  learning_rate = 0.1
  batch_size = 64
  num_epochs = 3
}
