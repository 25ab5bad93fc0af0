data {
  train = idx("x", "y")
  x : f32[7, 12]
  y : f32[6]
}
model {
  a = gru(flatten(x), 4)
  b = lstm(x, 2000)
  c = rnn(x, 4, activation = "sigmoid")
  d = gru(x, 4, bidirectional = true, reverse = true)
  e = lstm(x, 4, start = y)
  f = lstm(x, 4, layers = 2, cell = y)
  g = gru(x, 4, lengths = x)
  h = gru(x, 4, layers = 0)
}
train {
  loss = mean(a)
  optimizer = sgd(0.1)
}
