# Parts of a tensor, put together again.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = slice(x, 0, begin = 0, end = 2)
  b = transpose(reshape(x, [2, 3]))
  y = linear(concat([a, flatten(b)], axis = 0), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
