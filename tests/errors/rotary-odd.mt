data {
  train = idx("x", "y")
  x : f32[7, 12]
  y : f32[5, 12]
}
model {
  a = rotary(x, 4)
}
train {
  loss = mean(a)
  optimizer = sgd(0.1)
}
