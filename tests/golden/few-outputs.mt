# The filters' gradient has 8 x 9 outputs and a sum over 12,544 pixels: slices of k, and a thread for each step of them.
data {
  train = idx("image", "label")
  image : u8[14, 14]
  label : class[10]
}

model {
  h = relu(conv2d(reshape(image, [1, 14, 14]) / 255, 8, 3, padding = 1))
  z = linear(flatten(avg_pool(h, 14)), 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 64
}
