# Buffers and the third graph: a flattened field, and one that only loss and prediction read.
data {
  train = idx("x", "price")
  x     : u8[2, 3]
  price : f32
}

model {
  y = linear(flatten(normalize(x)), 1)
}

train {
  loss      = mse(y, normalize(price))
  predict   = denormalize(y, price)
  optimizer = sgd(0.1)
  batch     = 4
}
