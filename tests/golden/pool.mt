# Pools fold windows; the gradient of the largest element goes back to the first tap that saw it.
data {
  train = idx("images", "labels")
  image : u8[3, 9, 9]
  label : class[4]
}
model {
  x = max_pool(image * weight([3, 1, 1]), 3, stride = 2, padding = 1)
  h = linear(flatten(avg_pool(x, 2)), 4)
}
train {
  loss      = cross_entropy(h, label)
  optimizer = sgd(0.1)
  batch     = 4
}
