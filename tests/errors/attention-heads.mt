data {
  train = idx("x", "y")
  x : f32[7, 12]
  y : f32[5, 12]
}
model {
  a = attention(x, x, x, heads = 5)
}
train {
  loss = mean(a)
  optimizer = sgd(0.1)
}
