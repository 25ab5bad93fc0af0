data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}

model {
  h      = whiten(conv2d(image, 3, 1), image, 2)
  scores = linear(flatten(relu(h)), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
