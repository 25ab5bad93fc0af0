data {
  train = idx("images", "labels")
  image : u8[1000000000, 8, 8]
  label : class[4]
}
model {
  h = conv2d(image / 255, 16, 3, padding = 1)
  y = linear(global_avg_pool(h), 4)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
