data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}

model {
  h      = random_crop(conv2d(image, 16, 3), 1)
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
