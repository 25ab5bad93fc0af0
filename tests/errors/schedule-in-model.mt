data {
  train = csv("sales.csv")
  price : f32[1]
  town  : class[8]
  total : f32[1]
}

model {
  x = concat([price, one_hot(town, 8)], axis = 0)
  p = linear(x, 1) * cosine_lr(1)
}

train {
  loss      = mse(p, total)
  optimizer = sgd(0.1)
}
