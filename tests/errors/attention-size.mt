data {
  train = idx("x", "y")
  x : f32[7, 12]
  y : f32[5, 12]
}
model {
  a = attention(linear(x, 600), linear(x, 600), linear(x, 600), heads = 2)
}
train {
  loss = mean(a)
  optimizer = sgd(0.1)
}
