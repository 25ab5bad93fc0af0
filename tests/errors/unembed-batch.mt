data {
  train = idx("x", "y")
  x : f32[7, 12]
  y : f32[5, 12]
}
model {
  a = unembed(x, y)
}
train {
  loss = mean(a)
  optimizer = sgd(0.1)
}
