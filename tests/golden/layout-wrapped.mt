data {
  train = idx("x", "label")
  x : f32[6]
  label : class[3]
}
model {
  y = linear(concat([
  x,
      x * 2,
  ], axis = 0),
  out = 3,
  bias = 1 < 2 and
  2 < 3
  )
  z : f32
}
train {
  loss = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
